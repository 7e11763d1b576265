"""The list of lessons: title, summary and part of each, without anything that imports torch."""

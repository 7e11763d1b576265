"""The line of systems from 1943 to 2023: papers, what was new, the files that implement them, results and lessons."""

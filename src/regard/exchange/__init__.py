"""Exchange: models handed out and taken in: packs, Hugging Face folders and GGUF files, one file per model family."""

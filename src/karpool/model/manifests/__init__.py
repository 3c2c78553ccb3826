"""From what `-f` names to typed objects: files to bytes, bytes to documents, documents to objects."""

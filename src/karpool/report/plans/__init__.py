"""What a plan, its forecast and one node of it come to: documents, tables, pages, and how two plans differ."""

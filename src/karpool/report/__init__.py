"""How a plan and an explanation look: as JSON, as tables in a terminal, as one HTML page. Nothing here decides."""

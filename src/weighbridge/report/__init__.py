"""Shows an analysis to people and programs: terminal, HTML page, charts, JSON and CSV."""

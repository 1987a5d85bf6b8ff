"""What is shown of an analysis: sentences, charts, the page, the terminal, JSON and CSV."""

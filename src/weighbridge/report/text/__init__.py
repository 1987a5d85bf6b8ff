"""What a report says, made of what the analysis found."""

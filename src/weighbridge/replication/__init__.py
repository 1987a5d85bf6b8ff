"""Published studies: their figures as data, how they map to a run, and how well a run agrees with them."""

"""Published studies: their figures as data, what they correspond to in a run, and what they prove by themselves."""

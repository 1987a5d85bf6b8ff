"""A study as a folder with which it is run by hand, without Weighbridge."""

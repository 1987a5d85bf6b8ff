"""Runs studies: opens sites, runs trials one at a time, saves each as it ends, closes everything."""

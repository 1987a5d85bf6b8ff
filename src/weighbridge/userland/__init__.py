"""Userlands: the root file systems from which every environment runs the same bits."""

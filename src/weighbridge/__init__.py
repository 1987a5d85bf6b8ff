"""Weighbridge: what does isolation cost?"""

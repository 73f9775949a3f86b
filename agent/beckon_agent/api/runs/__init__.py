"""Runs for people to look at: lists, the steps of one, its events, and the calls that wait for a person.

What is here reads, and tells of what is stored; a run is begun by the faces that take questions.
"""

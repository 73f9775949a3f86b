"""Files that run inside pods of these tests, each with what its image holds."""

"""Agents, workflows and procedures, which users write, and their files."""

"""The agents, workflows and procedures that users write, and the reader of their files."""

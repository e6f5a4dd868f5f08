"""What a user writes: agents, workflows and procedures, and their files."""

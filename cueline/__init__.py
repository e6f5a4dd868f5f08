"""A runtime for LLM agents: event-sourced actors on Ray."""

__all__: list[str] = []

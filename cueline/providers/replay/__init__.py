"""A model that answers with the recorded replies of an earlier session."""

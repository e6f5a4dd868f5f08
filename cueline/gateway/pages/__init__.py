"""The pages: what people see in a browser. Each has a twin in JSON, below `/v1`."""

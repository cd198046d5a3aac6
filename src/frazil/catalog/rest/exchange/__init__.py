"""One exchange over HTTP, and what the answers mean."""

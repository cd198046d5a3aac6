"""What runs on executors, and what comes back from them."""

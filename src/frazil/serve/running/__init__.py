"""What a server is made of whatever it serves: connections, exchanges, look-ups, processes."""

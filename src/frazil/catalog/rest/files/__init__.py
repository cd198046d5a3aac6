"""How the files of a table are reached: by the server's credentials, or by its signatures."""

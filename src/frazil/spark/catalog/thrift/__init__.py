"""What drivers of JDBC and ODBC ask besides statements."""

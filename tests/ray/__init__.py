# Makes a package of it: a fixture of that scope lasts no longer than the tests here.

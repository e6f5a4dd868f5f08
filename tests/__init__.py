# Without it the package beside this would be called `ray`, as what is tested there is.

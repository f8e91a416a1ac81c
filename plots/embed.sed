# A script as lines of a C array of strings.
s/[\\"]/\\&/g
s/.*/"&\\n",/

"""Run directories and fleet folders that somebody else has written, and every command that opens one.

`values` has the hostile values, `mutations` puts one of them into one place, `commands` lists the commands, `bases`
makes valid runs, `canaries` is what no command may touch, `verdict` judges what a command did, `campaign` chooses
cases, and `sandbox` tries them in namespaces of its own.
"""

"""Reading of many files, each in its own process, within one memory budget.

A file read in its own process puts no other file at risk: if the process is killed another one
reads the file, and after some tries, or when memory runs out, the file ends with an error. Its
memory returns to the system, and cancelling means killing it. `pool.ReaderPool` is the entry point,
`requests` holds its requests and results.

`multiprocessing` is not used: its processes run the program that started them again (TensorBoard; a
user's script) and share state with it.
"""

"""Reading of many files, each in its own process, within one memory budget.

Reading a file in its own process puts no other file at risk: if the process is killed, another
process reads the file, and after some attempts, or when memory runs out, the file ends with an
error. Its memory returns to the system, and cancelling means killing the process. `pool.ReaderPool`
is the entry point, `requests` defines its requests and results.

`multiprocessing` is not used: its processes run the program that started them again (TensorBoard; a
user's script) and share state with it.
"""

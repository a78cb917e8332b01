"""Reading many files: each in a process of its own, within one budget of memory.

A file that is read in a process of its own costs nothing but itself: where the process is killed,
another one reads the file, and after some such tries, or when memory runs out, it ends as an error
of that file. Its memory goes back to the system, and to cancel it is to kill it. `pool.Readers` is
the whole; `orders` are its questions and answers.

The processes are our own rather than `multiprocessing`'s: those run the program that started
them again (all of TensorBoard; a user's script), and what they share is shared with that program.
"""

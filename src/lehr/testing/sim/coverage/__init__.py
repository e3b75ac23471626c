"""Coverage: which lines of the program the random histories reach.

In: names of modules, and seeds. Out: for each module, the lines that can be executed, and those that
a history has executed. A line that no history reaches is a place where a bug would not be found.

| module | what |
|---|---|
| `executable` | the lines of a source file that count |
| `recorder` | notes the lines that are executed |
| `measure` | finds source files, plays histories with a recorder, and merges what they reach |
"""

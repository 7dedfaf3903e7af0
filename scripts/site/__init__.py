"""The documentation site: `python -m scripts.site`, or `make site`.

pages.py        copy README and docs/ as pages, with links that work there
navigation.py   the sections and the order of their pages, read from their index pages
api_pages.py    a page for each public module: every name, its parameters and its docstring
api_names.py    the public names and their parameters, read from the code
llms.py         llms.txt and llms-full.txt
links.py        check every link, fragment and resource of the built pages
snippets.py     count the code blocks of the documents, and run them

It writes to build/site, which git ignores. The builder, Zensical, has its own environment and lock.
"""

"""The page on which a person asks the models that a server serves.

Read `application`, what its addresses answer; `panels`, what each kind of model is asked and answers; then `static/`,
the script and style of the browser.
"""

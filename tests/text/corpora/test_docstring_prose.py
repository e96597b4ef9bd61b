import inspect

from tiers import once

from keras_bert_impl.text.corpora.docstring_prose import is_prose, prose_paragraphs

pytestmark = once


def paragraphs(text):
    return prose_paragraphs(inspect.cleandoc(text))


def test_wrapped_lines_are_joined_and_split_into_sentences():
    text = """Return the sum of
        all elements. The axis is the last

        one by default, if it is not given."""
    assert paragraphs(text) == [
        ["Return the sum of all elements.", "The axis is the last"],
        ["one by default, if it is not given."],
    ]


def test_doctests_and_their_output_are_left_out():
    text = """The first line is prose.

    >>> print("this is not the prose")
    this is not the prose
    of the docstring

    The last line is prose too."""
    assert paragraphs(text) == [["The first line is prose."], ["The last line is prose too."]]


def test_fenced_and_indented_code_is_left_out():
    text = """This is how it is used::

        the code is in here and it is not read

        even after a blank line in the code

    Or it is used as follows:

    ```python
    a comment that is like the prose
    ```
    And this is the end."""
    assert paragraphs(text) == [
        ["This is how it is used:"],
        ["Or it is used as follows:"],
        ["And this is the end."],
    ]


def test_numpydoc_keeps_descriptions_without_names_types_and_headings():
    text = """norm(x, axis=None)

    Norm of a matrix or a vector.

    Parameters
    ----------
    x : array_like
        Input array of the norm, which
        is one or two-dimensional.
    axis : {None, int}, optional
        The axis of the array.

    See Also
    --------
    numpy.sum : Sum of the elements of an array."""
    assert paragraphs(text) == [
        ["Norm of a matrix or a vector."],
        ["Input array of the norm, which is one or two-dimensional."],
        ["The axis of the array."],
        ["Sum of the elements of an array."],
    ]


def test_google_style_arguments_become_paragraphs_without_their_names():
    text = """Adds two tensors of a kind.

    Args:
      x: A tensor of any type. It
        is not changed by this.
      **kwargs (dict): The rest of the arguments.

    Returns:
      A tensor of the type of x."""
    assert paragraphs(text) == [
        ["Adds two tensors of a kind."],
        ["A tensor of any type.", "It is not changed by this."],
        ["The rest of the arguments."],
        ["A tensor of the type of x."],
    ]


def test_inline_marks_are_reduced_to_what_they_mark():
    text = """See :class:`~keras.Model` and ``y`` or `z`, the **first** and *second* of `these <http://a.b>`_ [1]_
    or the [guide](https://c.d/e)."""
    assert paragraphs(text) == [["See keras.Model and y or z, the first and second of these or the guide."]]


def test_prose_has_words_and_no_code():
    assert is_prose("Returns the shape of a tf.Tensor.")
    assert not is_prose("x = the_first(of_all)")
    assert not is_prose("numpy.sin, numpy.cos and numpy.tan")
    assert not is_prose("Optional tensor.")
    assert not is_prose("return the value if x == 3")

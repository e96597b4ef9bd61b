"""Fine-tuning tasks, one family in each file: how examples are read, made into inputs, scored and written.

A task is any object with these parts; `keras-bert finetune` calls nothing else.

| part                                          | meaning                                                           |
| ---                                           | ---                                                               |
| `name`                                        | the task's name                                                   |
| `splits`                                      | name -> its file: a file name, a tuple that begins with one, or   |
|                                               | an object with `path(directory)`; "train" is the training set     |
| `dev`                                         | splits scored after each epoch; the first chooses the best epoch  |
| `test`                                        | splits predicted at the end, with or without labels               |
| `main_metric`                                 | the metric of `score` that chooses the best epoch                 |
| `defaults`                                    | training options that differ from the paper's usual ones          |
| `paper`                                       | name of a row of the paper's tables -> {metric: percent}          |
| `bad_rows`                                    | "stop" at or "skip" malformed rows, unless the user chooses       |
| `read(directory, split, bad_rows)`            | the examples of a split, any type with `labels`, None if there    |
|                                               | are none                                                          |
| `suited_to(train)`                            | the task adapted to the training examples; optional               |
| `find_class_names(train)`                     | names of the classes, or None                                     |
| `build(encoder, tokenizer, class_names,       | the model: the encoder with the task's head                       |
| sequence_length)`                             |                                                                   |
| `loss()`                                      | the loss for `compile`                                            |
| `featurize(tokenizer, examples, class_names,  | `batching.Rows`: how examples become rows                         |
| sequence_length)`                             |                                                                   |
| `tuned_on_dev(examples, rows, outputs)`       | the task with what is chosen on dev after training, before the    |
|                                               | splits are scored and written; optional                           |
| `pass_on(model)`                              | gives the model what was chosen on dev; with `tuned_on_dev`       |
| `score(examples, rows, outputs, class_names)` | a dict of metrics; for the main one, higher is better             |
| `write_predictions(directory, suffix,         | writes files for people to read                                   |
| examples, rows, outputs, class_names)`        |                                                                   |
| `submissions`                                 | test split -> file in the official format; {} for most tasks      |
| `write_submission(directory, split, outputs,  | writes that file                                                  |
| class_names)`                                 |                                                                   |

`outputs` are the model's outputs for every example, in order, as `batching.predict_rows` returns them.
"""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Task:
    """The parts of this folder's tasks that are values; see the table above."""

    name: str
    splits: dict
    dev: tuple = ("dev",)
    test: tuple = ("test",)
    main_metric: str | None = None
    submissions: dict = dataclasses.field(default_factory=dict)
    paper: dict = dataclasses.field(default_factory=dict)
    defaults: dict = dataclasses.field(default_factory=dict)
    bad_rows: str = "stop"

    def find_class_names(self, train):
        """None: no classes."""
        return None

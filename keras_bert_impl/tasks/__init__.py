"""Fine-tuning tasks, one family a file: how its files are read, become rows, are scored and written, on any backend.

A task is any object with these parts; `keras-bert finetune` calls nothing else.

| part                                          | what it is                                                        |
| ---                                           | ---                                                               |
| `name`                                        | of the task                                                       |
| `splits`                                      | name -> where it lies: a file name, a tuple that begins with one, |
|                                               | or what has a `path(directory)`; "train" is trained on            |
| `dev`                                         | splits scored after each epoch; the first chooses the best epoch  |
| `test`                                        | splits predicted at the end, with or without labels               |
| `main_metric`                                 | the figure, of those of `score`, by which the best is chosen      |
| `defaults`                                    | options of training that differ from the paper's usual ones       |
| `paper`                                       | name of a row of the paper's tables -> {figure: percent}          |
| `bad_rows`                                    | "stop" or "skip": of malformed rows, unless the user says         |
| `read(directory, split, bad_rows)`            | the examples of a split, of any type; `labels` None: unlabelled   |
| `suited_to(train)`                            | the task as these examples ask for it; may be missing             |
| `find_class_names(train)`                     | names of the classes, or None                                     |
| `build(encoder, tokenizer, class_names,       | the model: which head                                             |
| sequence_length)`                             |                                                                   |
| `loss()`                                      | what `compile` takes                                              |
| `featurize(tokenizer, examples, class_names,  | `batching.Rows`: how examples become rows                         |
| sequence_length)`                             |                                                                   |
| `tuned_on_dev(examples, rows, outputs)`       | the task with what is chosen on dev after training, before the    |
|                                               | splits are scored and written; may be missing                     |
| `score(examples, rows, outputs, class_names)` | a dict of figures, higher is better for the main one              |
| `write_predictions(directory, suffix,         | files for people to read                                          |
| examples, rows, outputs, class_names)`        |                                                                   |
| `exports`                                     | False: its model has no SavedModel; may be missing                |
| `submissions`                                 | test split -> file of the official format; mostly {}              |
| `write_submission(directory, split, outputs,  | writes it                                                         |
| class_names)`                                 |                                                                   |

`outputs` are the model's for every example in order, as `batching.predict_rows` gives them.
"""

"""Fine-tuning tasks, one family a file: how its files are read, batched, scored and written, without TensorFlow.

A task is any object with these parts; `training/finetune.py` calls nothing else.

| part                                                | what it is                                                        |
| ---                                                 | ---                                                               |
| `name`                                              | of the task                                                       |
| `splits`                                            | name -> where it lies: "train" is trained on                      |
| `dev`                                               | splits scored after each epoch; the first chooses the best epoch  |
| `test`                                              | splits predicted at the end, with or without labels               |
| `main_metric`                                       | the figure, of those of `score`, by which the best is chosen      |
| `defaults`                                          | options of training that differ from the paper's usual ones       |
| `paper`                                             | name of a row of the paper's tables -> {figure: value in percent} |
| `bad_rows`                                          | what becomes of malformed rows unless the user says               |
| `read(directory, split, bad_rows)`                  | the examples of a split, of any type; `labels` None: unlabelled   |
| `find_class_names(train)`                           | names of the classes, or None                                     |
| `build(encoder, tokenizer, class_names, length)`    | the model: which head                                             |
| `loss()`                                            | what `compile` takes                                              |
| `featurize(tokenizer, examples, class_names, length)` | `batching.Rows`: how examples become rows                         |
| `score(examples, rows, outputs, class_names)`       | a dict of figures                                                 |
| `write_predictions(directory, suffix, examples, rows, outputs, class_names)` | files for people                         |
| `submissions`, `write_submission(directory, split, outputs, class_names)`    | test split -> file of the official format |

`outputs` are the model's for every example in order, as `batching.predict_rows` gives them.
"""

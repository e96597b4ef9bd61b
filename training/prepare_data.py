"""`keras-bert prepare-data`, from a clone: python training/prepare_data.py --help"""

from keras_bert_training.cli import main

if __name__ == "__main__":
    main(before=["prepare-data"])

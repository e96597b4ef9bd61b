"""`keras-bert finetune`, from a clone: python training/finetune.py --help"""

from keras_bert_training.cli import main

if __name__ == "__main__":
    main(before=["finetune"])

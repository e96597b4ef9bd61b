"""`python -m keras_bert_impl` is `keras-bert`."""

from keras_bert_impl.cli import main

if __name__ == "__main__":
    main()

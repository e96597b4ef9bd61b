"""`python -m keras_bert_training` is `keras-bert`."""

if __name__ == "__main__":
    from keras_bert_training.cli import main

    main()

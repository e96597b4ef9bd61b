"""The two streams by which an XLNet learns words in a random order (Yang et al. 2019, sections 2.2 to 2.4)."""

from keras_bert_impl.layers import QueryStream, RowMemory


def second_stream(encoder, rows, mask_positions, permuted, seed=None, halves=False, bi_data=False, memory_rows=None):
    """The states of an XLNetEncoder's tokens, and behind them of the queries that predict words.

    Args:
        encoder: the XLNetEncoder, whose layers are called a second time.
        rows: its inputs by name, and with a memory `continues` (batch,), int; see `layers.RowMemory`.
        mask_positions: int (batch, predictions), as of `layers.QueryStream`.
        permuted: of `layers.QueryStream`.
        seed: of it, too.
        halves: of it, too.
        bi_data: whether every second row of a batch has text that is read backwards, whose distances are the opposite.
            In zihangdai/xlnet and transformers it is the second half of a batch, of which devices could not each have
            their part.
        memory_rows: for a memory of the batch before, the most rows of a batch. `config.memory_length` says how many
            tokens each row remembers, `config.reused_length` how many of a row, from its first on, are remembered. Rows
            whose next row follows upon their first half need `halves`: otherwise they would remember what is to be
            predicted.

    Returns: states (batch, length + predictions, hidden_size), and the places of the queries among them (batch,
        predictions).
    Raises: ValueError for a memory without a `config.memory_length`, or of packed rows.
    """
    config, policy = encoder.config, encoder.dtype_policy
    if memory_rows:
        check_memory(config, rows)
        memory = RowMemory(
            memory_rows,
            config.depth,
            config.memory_length,
            config.hidden_size,
            config.reused_length,
            dtype=policy,
            name="row_memory",
        )
        read = memory(rows["continues"])
    remembered = read["states"] if memory_rows else None
    stream = QueryStream(permuted=permuted, seed=seed, halves=halves, name="query_stream")
    found = stream(
        mask_positions,
        rows["padding_mask"],
        rows["segment_ids"],
        sequence_ids=rows.get("sequence_ids"),
        remembered=read["is_filled"] if memory_rows else None,
    )
    embeddings, start = encoder.token_embedding(rows["token_ids"]), encoder.get_layer("query_start")
    start.trainable = True
    hidden = encoder.get_layer("embeddings_dropout")(start(embeddings, found["places"]))
    distances = encoder.get_layer("distances")(embeddings, memory=remembered, bi_data=bi_data)
    context = {
        "attention_mask": found["attention_mask"],
        "positions": encoder.get_layer("distances_dropout")(distances),
        "same_segment": found["same_segment"],
        "places": found["places"],
    }
    read_by_layers = []
    for place, number in enumerate(config.schedule):
        if memory_rows:
            read_by_layers.append(hidden)
            context["memory"] = remembered[:, place]
        hidden = encoder.get_layer(f"block_{number}")(hidden, **context)
    if memory_rows:
        hidden = memory(rows["continues"], outputs=hidden, states=read_by_layers, token_ids=rows["token_ids"])
    return encoder.get_layer("output_dropout")(hidden), found["query_places"]


def check_memory(config, rows):
    """Raises ValueError for a memory that cannot be."""
    if config.memory_length is None:
        raise ValueError("memory_rows needs a configuration with memory_length, the tokens that a row remembers.")
    if "sequence_ids" in rows:
        raise ValueError("Packed rows have no memory of the batch before: leave memory_rows out, or packed.")

// What each task is called, which fields its form has, and its examples, whose button shows `label` or the first field.
// The order is that of the page.

const TEXT = { name: "text", label: "Text", rows: 3 };
const PAIR = { name: "text_pair", label: "Second text (optional)", rows: 2, optional: true };

export const TASKS = {
  "fill-mask": {
    title: "Fill in a word",
    hint: "Write a sentence with [MASK] in place of a word. The model guesses the word.",
    button: "Guess the word",
    fields: [{ ...TEXT, label: "Sentence", mask: true }],
    examples: [
      { text: "The capital of France is [MASK]." },
      { text: "Returns a [MASK] of integers." },
      { text: "If the file does not [MASK], an error is [MASK]." },
    ],
  },
  classify: {
    title: "Classify a text",
    hint: "The model says which of its classes the text belongs to, and how sure it is.",
    button: "Classify",
    fields: [TEXT, PAIR],
    examples: [
      { text: "A warm and funny film that I would gladly see again." },
      { text: "Two hours of my life that I will never get back." },
      { text: "The actors are good, but the story goes nowhere." },
    ],
  },
  rate: {
    title: "Rate a text",
    hint: "The model answers with a number, on the scale it was trained with.",
    button: "Rate",
    fields: [TEXT, PAIR],
    examples: [{ text: "A man is playing a guitar.", text_pair: "Someone plays an instrument." }],
  },
  "next-sentence": {
    title: "Does it follow?",
    hint: "The model says whether the second text could come right after the first.",
    button: "Does it follow?",
    fields: [
      { name: "text", label: "First text", rows: 2 },
      { name: "text_pair", label: "Second text", rows: 2 },
    ],
    examples: [
      {
        label: "A text that follows",
        text: "She knocked at the door and waited.",
        text_pair: "After a minute an old man opened it.",
      },
      {
        label: "One that does not",
        text: "She knocked at the door and waited.",
        text_pair: "The returned array has the same shape as the input.",
      },
    ],
  },
  answer: {
    title: "Answer a question",
    hint: "The model looks for the answer in your passage and marks it there.",
    button: "Find the answer",
    fields: [
      { name: "question", label: "Question", rows: 1 },
      { name: "context", label: "Passage", rows: 7 },
    ],
    examples: [
      {
        question: "When was the bridge opened?",
        context:
          "The Golden Gate Bridge spans the strait between San Francisco and Marin County. Work began in January " +
          "1933, and the bridge was opened in May 1937. Joseph Strauss was the chief engineer. Its orange colour was " +
          "chosen because it can be seen in fog.",
      },
      {
        question: "Who discovered radium?",
        context:
          "Marie Curie was born in Warsaw in 1867. She moved to Paris to study physics, and with her husband Pierre " +
          "she discovered polonium and radium in 1898. She is the only person who received Nobel prizes in two sciences.",
      },
    ],
  },
  entities: {
    title: "Find names",
    hint: "The model marks names in the text: people, places, companies, or whatever it was trained to find.",
    button: "Find names",
    fields: [{ ...TEXT, rows: 4 }],
    examples: [
      { text: "Barack Obama flew from Paris to New York to speak at Google." },
      { text: "Ada Lovelace met Charles Babbage in London in June 1833." },
      { text: "Just watched Star Wars with Anna in Chicago, then pizza!" },
    ],
  },
  compare: {
    title: "Compare sentences",
    hint: "The model says how close in meaning the sentences are: 1 is the same, 0 or less unrelated.",
    button: "Compare",
    fields: [{ name: "sentences", label: "Sentences, one on each line", rows: 5 }],
    examples: [
      {
        label: "Music and shares",
        sentences:
          "A man is playing the guitar.\nSomeone makes music on a string instrument.\nThe stock market fell today.\n" +
          "Shares lost a tenth of their value.",
      },
      { label: "A question", sentences: "Where can I buy bread?\nThe bakery is open until six.\nIt will rain tomorrow." },
    ],
  },
  choose: {
    title: "Choose an ending",
    hint: "The model picks the ending that fits the beginning best.",
    button: "Choose",
    fields: [
      { name: "text", label: "Beginning", rows: 2 },
      { name: "endings", label: "Endings, one on each line", rows: 4 },
    ],
    examples: [
      {
        text: "It began to rain, so she",
        endings: "opened her umbrella.\nwatered the flowers.\nput on her sunglasses.",
      },
    ],
  },
  attention: {
    title: "See attention",
    hint: "Where does the model look? For each word, see which words it draws on. Texts of up to 300 characters.",
    button: "Show attention",
    fields: [{ ...TEXT, label: "Sentence", rows: 2 }],
    examples: [
      { text: "The animal did not cross the street because it was too tired." },
      { text: "She sat on the bank of the river and opened a bank account." },
    ],
  },
};

"""What the model is given."""
import random


def random_prompts(options, vocabulary):
    """Token ids, prompt_len of each sequence; the same in every run."""
    generator = random.Random(0)
    return [[generator.randrange(vocabulary) for _ in range(options.prompt_len)] for _ in range(options.batch_size)]

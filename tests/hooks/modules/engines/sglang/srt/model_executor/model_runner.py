import torch


class ModelRunner:
    def __init__(self, is_draft_worker=False):
        self.is_draft_worker = is_draft_worker
        self.model = torch.nn.Linear(4, 4)

    def forward(self, forward_batch, pp_proxy_tensors=None):
        return self.model(torch.ones(1, 4))

    def sample(self, logits_output, forward_batch):
        return torch.nn.Identity()(logits_output)

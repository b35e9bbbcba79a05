// A LibTorch program without Python: starts CUDA, then runs a matrix product, a torch::nn module that says where it is, and
// a TorchScript file. program SCRIPT.pt
#include <dlfcn.h>
#include <torch/script.h>
#include <torch/torch.h>

#include "lamina_torch.h"

namespace {

struct MlpImpl : torch::nn::Module {
  MlpImpl() : up(register_module("up", torch::nn::Linear(4, 8))) {}
  torch::Tensor forward(const torch::Tensor& x) {
    LAMINA_MODULE_RANGE(*this);
    return torch::relu(up(x));
  }
  torch::nn::Linear up;
};
TORCH_MODULE(Mlp);

void start_cuda() {
  void* driver = dlopen("libcuda.so.1", RTLD_NOW);
  auto* init = driver ? reinterpret_cast<int (*)(unsigned)>(dlsym(driver, "cuInit")) : nullptr;
  if (init) init(0);
}

}  // namespace

int main(int, char** arguments) {
  start_cuda();
  torch::NoGradGuard no_grad;
  torch::Tensor x = torch::ones({2, 4});
  torch::mm(x, torch::ones({4, 3}));
  Mlp()(x);
  torch::jit::load(arguments[1]).forward({x});
}

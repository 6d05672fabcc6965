// What torch's CPU build asks of a CUDA device before it computes anything on one, answered without a device.
//
// Autograd, autocast and tensor factories look for two objects that only a CUDA build of torch registers: the guard,
// which switches devices and streams, and the hooks, which say that there is a device. These switch nothing and say that
// there is one. Kernels are not replaced: only fake tensors (torch._subclasses.fake_tensor), which compute shapes and
// types, can be used on the device.
#include <ATen/detail/CUDAHooksInterface.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

namespace {

constexpr auto cuda = c10::DeviceType::CUDA;
const c10::Device first(cuda, 0);

class Guard final : public c10::impl::NoOpDeviceGuardImpl<cuda> {
 public:
  c10::Device getDevice() const override { return first; }
  c10::Device exchangeDevice(c10::Device) const override { return first; }
  c10::Stream getStream(c10::Device) const noexcept override { return c10::Stream(c10::Stream::DEFAULT, first); }
  c10::Stream exchangeStream(c10::Stream) const noexcept override { return c10::Stream(c10::Stream::DEFAULT, first); }
  // Backward passes order streams by events; here everything has happened.
  void record(void**, const c10::Stream&, const c10::DeviceIndex, const c10::EventFlag) const override {}
  void block(void*, const c10::Stream&) const override {}
  bool queryEvent(void*) const override { return true; }
};

const c10::impl::DeviceGuardImplRegistrar guard(cuda, new Guard);

}  // namespace

namespace at {

// torch looks for hooks of this very name.
struct CUDAHooks final : CUDAHooksInterface {
  explicit CUDAHooks(CUDAHooksArgs) {}
  void init() const override {}
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasCUDA() const override { return true; }
  bool hasPrimaryContext(DeviceIndex) const override { return false; }
  DeviceIndex deviceCount() const override { return 1; }
  DeviceIndex current_device() const override { return 0; }
  DeviceIndex getCurrentDevice() const override { return 0; }
  void setCurrentDevice(DeviceIndex) const override {}
  DeviceIndex exchangeDevice(DeviceIndex) const override { return 0; }
  DeviceIndex maybeExchangeDevice(DeviceIndex) const override { return 0; }
};

REGISTER_CUDA_HOOKS(CUDAHooks)

}  // namespace at

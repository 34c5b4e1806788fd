/*
 * c10d_share.cpp - moves a tensor to memory that the other ranks of the host read, and store sums into, where it lies.
 *
 * As torch does in Tensor.share_memory_(): the storage gets other memory, and all tensors that are views of it follow. Only for tensors
 * whose memory nobody knows by its address, as DDP's buckets are.
 */
#include "c10d_backend.h"

#include <c10/core/CPUAllocator.h>

#include <cstring>

namespace espalier {

namespace {

/* So much goes through a board by default, where it is copied anyhow. */
constexpr size_t kSmall = 128 << 10;

void let_go(void *memory)
{
	esp_free(nullptr, memory);
}

/* Is it torch's, or ours? Not what came from numpy, a file, another process, or is pinned for a GPU. */
bool is_ordinary(const c10::DataPtr &memory)
{
	c10::DeleterFnPtr deleter = memory.get_deleter();

	return deleter == &let_go || deleter == c10::GetCPUAllocator()->raw_deleter() || deleter == c10::GetDefaultCPUAllocator()->raw_deleter();
}

bool is_movable(const at::Tensor &tensor)
{
	return tensor.device().is_cpu() && tensor.layout() == at::kStrided && tensor.has_storage() && tensor.storage_offset() == 0 &&
	       tensor.is_contiguous() && tensor.storage().nbytes() == tensor.nbytes() && tensor.nbytes() > kSmall &&
	       is_ordinary(tensor.storage().data_ptr());
}

} // namespace

bool share(const at::Tensor &tensor, esp_context *context)
{
	void *memory;

	if (!is_movable(tensor))
		return false;
	c10::StorageImpl *storage = tensor.storage().unsafeGetStorageImpl();
	void *old = storage->data_ptr().get();
	if (storage->data_ptr().get_deleter() == &let_go && esp_keep(context, old) == ESP_OK)
		return true; /* it is of this context */
	TORCH_CHECK(esp_alloc(context, tensor.nbytes(), &memory) == ESP_OK, "espalier: no shared memory for ", tensor.nbytes(), " bytes");
	esp_keep(context, memory);
	std::memcpy(memory, old, tensor.nbytes());
	storage->set_data_ptr(c10::DataPtr(memory, memory, &let_go, tensor.device()));
	return true;
}

bool Backend::share(const at::Tensor &tensor)
{
	Inside inside(door_->lock);

	return door_->open && espalier::share(tensor, context_);
}

} // namespace espalier

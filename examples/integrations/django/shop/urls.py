"""The addresses of the shop."""

from django.contrib import admin
from django.urls import path

from shop import views

urlpatterns = [
    path("admin/", admin.site.urls),
    path("orders/<str:item>", views.place_order),
    path("tasks/<str:name>", views.enqueue),
    path("tasks/<str:name>/<str:result_id>", views.read),
]
